// The single connections of an edge, those with most bytes first.

import { useEffect, useState } from "preact/hooks";
import { api, ProblemError } from "../api/client";
import type { EdgeConnection, EdgeConnections } from "../api/types";
import { bytes, clock, count, duration, visible } from "../lib/format";

const AGAIN_MS = 2_000;

function useConnections(
  path: string,
  live: boolean,
): { found: EdgeConnections | null; error: string | null } {
  const [state, setState] = useState<{ found: EdgeConnections | null; error: string | null }>({
    found: null,
    error: null,
  });
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async (): Promise<void> => {
      if (document.visibilityState !== "hidden") {
        try {
          const found = await api.edges<EdgeConnections>(`${path}/connections`, stop.signal);
          if (!stop.signal.aborted) setState({ found, error: null });
        } catch (error) {
          if (stop.signal.aborted) return;
          const text = error instanceof ProblemError ? error.message : "the agent does not answer";
          setState(({ found }) => ({ found, error: text }));
        }
      }
      if (live && !stop.signal.aborted) timer = setTimeout(() => void load(), AGAIN_MS);
    };
    void load();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [path, live]);
  return state;
}

const or = (value: number | null, show: (value: number) => string): string =>
  value === null ? "–" : show(value);

function Row({ one }: { one: EdgeConnection }) {
  return (
    <tr>
      <td>{one.side}</td>
      <td class="mono">{visible(one.local)}</td>
      <td class="mono">{visible(one.remote)}</td>
      <td class="numeric">{one.pid ?? "–"}</td>
      <td class="numeric">{one.age_ms < 60_000 ? duration(one.age_ms * 1e6) : clock(one.age_ms / 1000)}</td>
      <td>{one.open ? "open" : "ended"}</td>
      <td class="numeric">{bytes(one.write_bytes)}</td>
      <td class="numeric">{bytes(one.read_bytes)}</td>
      <td class="numeric">{or(one.min_rtt_us, (us) => duration(us * 1000))}</td>
      <td class="numeric">{or(one.rtt_mean_us, (us) => duration(us * 1000))}</td>
      <td class="numeric">{or(one.retransmits, count)}</td>
      <td class="numeric">{or(one.drops, count)}</td>
    </tr>
  );
}

/** `path` below /api/v1, up to the edge. */
export function EdgeConnectionList({ path, live }: { path: string; live: boolean }) {
  const { found, error } = useConnections(path, live);
  return (
    <section class="edge-connections" aria-labelledby="connections-title">
      <h2 id="connections-title">
        Connections{" "}
        {found !== null && found.items.length > 0 && (
          <span class="muted small">
            {`the ${found.items.length} with most bytes; at most ${found.most} are listed at each end`}
          </span>
        )}
      </h2>
      {error !== null && <p class="muted">{error}</p>}
      {found !== null && found.items.length === 0 && (
        <p class="muted">{found.reason === null ? "None is open now." : `None: ${visible(found.reason)}.`}</p>
      )}
      {found !== null && found.items.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
        <div class="plain-table-box" tabIndex={0} role="region" aria-label="List of connections">
          <table class="plain-table">
            <thead>
              <tr>
                {["Seen by", "Own address", "Other address", "Pid"].map((title) => (
                  <th key={title} scope="col">
                    {title}
                  </th>
                ))}
                {["Age", "State", "Written", "Read", "Min RTT", "Smoothed RTT", "Retr", "Drops"].map(
                  (title) => (
                    <th key={title} scope="col">
                      {title}
                    </th>
                  ),
                )}
              </tr>
            </thead>
            <tbody>
              {found.items.map((one) => (
                <Row key={`${one.side} ${one.local} ${one.remote}`} one={one} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
