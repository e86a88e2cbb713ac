import { mount } from "svelte";

import App from "./App.svelte";
import "./tokens.css";
import "./base.css";
import { theme } from "./lib/theme.svelte.ts";

theme.apply();
mount(App, { target: document.getElementById("app")! });
