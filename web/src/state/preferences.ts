// What the reader chose for this browser: theme, and whether single keys are shortcuts.

import { computed, effect, signal } from "@preact/signals";

export type ThemeChoice = "auto" | "light" | "dark";

const THEME_KEY = "profiler-agent.theme";
const KEYS_KEY = "profiler-agent.single-keys";

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Storage may be switched off; the choice then lasts for this page only.
  }
}

function storedTheme(): ThemeChoice {
  const value = read(THEME_KEY);
  return value === "light" || value === "dark" ? value : "auto";
}

const darkQuery = matchMedia("(prefers-color-scheme: dark)");
const forcedQuery = matchMedia("(forced-colors: active)");
const systemDark = signal(darkQuery.matches);

export const themeChoice = signal<ThemeChoice>(storedTheme());
export const forcedColours = signal(forcedQuery.matches);
export const singleKeys = signal(read(KEYS_KEY) !== "off");

/** True when the page is drawn dark; the canvas needs to know. */
export const dark = computed(() =>
  themeChoice.value === "auto" ? systemDark.value : themeChoice.value === "dark",
);

export function startPreferences(): void {
  darkQuery.addEventListener("change", () => {
    systemDark.value = darkQuery.matches;
  });
  forcedQuery.addEventListener("change", () => {
    forcedColours.value = forcedQuery.matches;
  });
  effect(() => {
    document.documentElement.dataset.theme = themeChoice.value;
    write(THEME_KEY, themeChoice.value);
  });
  effect(() => write(KEYS_KEY, singleKeys.value ? "on" : "off"));
}

/** auto -> light -> dark -> auto. */
export function nextTheme(): void {
  const order: readonly ThemeChoice[] = ["auto", "light", "dark"];
  themeChoice.value = order[(order.indexOf(themeChoice.value) + 1) % order.length]!;
}
