/** Asking again and again. */

/** Calls `look` at once, and again as many milliseconds after each answer as it returns, until it returns null or `signal`
 *  aborts. A hidden page does not ask; one that is shown again asks at once. Rejects with what `look` throws. */
export async function poll(look: () => Promise<number | null>, signal?: AbortSignal): Promise<void> {
  for (;;) {
    const milliseconds = await look();
    if (milliseconds === null || signal?.aborted) return;
    await rest(milliseconds, signal);
    if (signal?.aborted) return;
  }
}

function rest(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const ended = new AbortController();
    const end = () => {
      clearTimeout(timer);
      ended.abort();
      resolve();
    };
    const endIfShown = () => document.hidden || end();
    const timer = setTimeout(endIfShown, milliseconds);
    document.addEventListener("visibilitychange", endIfShown, { signal: ended.signal });
    signal?.addEventListener("abort", end, { signal: ended.signal });
  });
}
