/** The client of the service that serves this page; it asks for the API key where the service requires one. */

import { Thalweg } from "../client/thalweg.ts";
import { apiKey } from "./key.svelte.ts";

export const thalweg = new Thalweg({ key: () => apiKey.current, onUnauthorized: (sent) => apiKey.ask(sent) });
