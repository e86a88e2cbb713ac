/** Keys that do something on the whole page. They are silent while somebody types. */

export type Shortcuts = Record<string, (event: KeyboardEvent) => void>;

function types(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

/** Calls the function of the key that is pressed, by `event.key`, until the returned function is called. Call it in an
 *  effect: `$effect(() => onKeys({ j: next }))`. */
export function onKeys(shortcuts: Shortcuts): () => void {
  const listen = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
    if (types(event.target) || document.querySelector("dialog[open]")) return;
    if (event.key === "Enter" && event.target instanceof Element && event.target.closest("a, button, summary")) return;
    const act = shortcuts[event.key];
    if (act) {
      event.preventDefault();
      act(event);
    }
  };
  addEventListener("keydown", listen);
  return () => removeEventListener("keydown", listen);
}
