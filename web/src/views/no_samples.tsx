// Why there is no picture, and how to get one.

import type { FlameIndex } from "../lib/flame_index";
import { patchRoute, route } from "../state/route";
import { Empty } from "./states";

/** Why nothing is left of a result with waits, and how to see it. */
function AllHidden({ index }: { index: FlameIndex }) {
  const { idle } = index.graph;
  const onlyIdle = idle !== null && idle.count === idle.totalCount && idle.count > 0;
  const everything = {
    idle: "show",
    states: [],
    reasons: [],
    from: null,
    to: null,
    tids: [],
    except: false,
  } as const;
  return (
    <Empty title={onlyIdle ? "Everything is idle" : "Nothing that is shown waited"}>
      <p class="muted">
        {onlyIdle
          ? "All threads only waited for something to do, and idle waits are hidden."
          : "The picked time, threads, states and reasons hold no waits, or only idle ones, which are hidden."}
      </p>
      <button type="button" onClick={() => patchRoute(everything, "replace")}>
        Show everything
      </button>
    </Empty>
  );
}

export function NoSamples({
  index,
  running,
  failed,
}: {
  index: FlameIndex;
  running: boolean;
  failed: boolean;
}) {
  const { from, to, tids } = route.value;
  if (index.graph.idle !== null) return <AllHidden index={index} />;
  if (from !== null || to !== null || tids.length > 0) {
    return (
      <Empty title="No samples in the picked time and threads">
        <button
          type="button"
          onClick={() => patchRoute({ from: null, to: null, tids: [], except: false }, "replace")}
        >
          Show everything
        </button>
      </Empty>
    );
  }
  if (failed) {
    return (
      <Empty title="No samples">
        <p class="muted">The task failed before it had any.</p>
      </Empty>
    );
  }
  return (
    <Empty title={running ? "No samples yet" : "No samples"}>
      <p class="muted">
        {running
          ? "Samples are taken only while the target uses a CPU. The graph appears with the first one."
          : "No sample met the target: it used no CPU, or too little for this frequency and time."}
      </p>
    </Empty>
  );
}
