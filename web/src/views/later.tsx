// Pages whose code comes after the first load: the list of pods is there before the flame graph's code is.

import { signal } from "@preact/signals";
import type { ComponentType, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { ErrorBox, Loading } from "./states";

/** Code of one or several pages. */
export interface Later<Module> {
  /** Fetches it unless it is there already. A failure is kept to be shown, and tried again by the next call. */
  readonly fetch: () => Promise<void>;
  /** The component that `pick` takes out of it, or what is shown until then. */
  readonly page: <Props extends object>(
    pick: (module: Module) => ComponentType<Props>,
  ) => ComponentType<Props>;
}

export function later<Module>(what: string, load: () => Promise<Module>): Later<Module> {
  const loaded = signal<Module | null>(null);
  const failed = signal(false);
  let underway: Promise<void> | null = null;
  const fetch = (): Promise<void> => {
    underway ??= load()
      .then((module) => {
        loaded.value = module;
        failed.value = false;
      })
      .catch(() => {
        failed.value = true;
        underway = null;
      });
    return underway;
  };
  return {
    fetch,
    page:
      (pick) =>
      (props): JSX.Element => {
        const module = loaded.value;
        useEffect(() => void fetch(), []);
        if (module !== null) {
          const Picked = pick(module);
          return <Picked {...props} />;
        }
        if (!failed.value) return <Loading what={what} />;
        return (
          <ErrorBox
            title={`${what} could not be loaded`}
            detail="The agent does not answer, or another version of it runs now."
            hint="Reload this page once the agent is there."
          />
        );
      },
  };
}
