/** Light or dark: as the system has it, until somebody chooses; the choice is kept in this browser. */

const KEY = "thalweg.theme";
const THEMES = ["system", "light", "dark"] as const;

export type Theme = (typeof THEMES)[number];

class ThemeChoice {
  chosen = $state<Theme>(stored());
  #system = matchMedia("(prefers-color-scheme: dark)");
  #systemIsDark = $state(this.#system.matches);

  constructor() {
    this.#system.addEventListener("change", (event) => {
      this.#systemIsDark = event.matches;
      this.apply();
    });
  }

  get shown(): "light" | "dark" {
    return this.chosen === "system" ? (this.#systemIsDark ? "dark" : "light") : this.chosen;
  }

  choose(theme: Theme): void {
    this.chosen = theme;
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
    this.apply();
  }

  /** From the system's choice to its opposite, and back to the system's. */
  toggle(): void {
    const opposite = this.shown === "dark" ? "light" : "dark";
    this.choose(opposite === (this.#systemIsDark ? "dark" : "light") ? "system" : opposite);
  }

  apply(): void {
    document.documentElement.dataset.theme = this.shown;
  }
}

function stored(): Theme {
  const found = localStorage.getItem(KEY);
  return THEMES.find((each) => each === found) ?? "system";
}

export const theme = new ThemeChoice();
