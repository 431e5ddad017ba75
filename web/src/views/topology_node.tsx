// The nodes of the map: processes as circles with their share of the CPU, peers as boxes.

import { containerTip, containerTitle, podOrContainer } from "../lib/container_names";
import { bytes, plural, visible } from "../lib/format";
import type { TopologyNode } from "../lib/topology";
import type { CpuShare } from "../lib/topology_cpu";
import { CENTER, nodeSize, type Place } from "../lib/topology_layout";
import { type Box, boxAround } from "../lib/topology_tags";
import { patchRoute } from "../state/route";

/** Between a node and the ring around it. */
const RING_GAP = 5;

const ROLE_TEXT = {
  sidecar: "the sidecar, in the centre",
  center: "in the centre",
  app: "process of the pod",
  helper: "helper process",
  caller: "calls this pod",
  dependency: "called by this pod",
  control: "control plane, names or telemetry",
  unknown: "not resolved",
} as const;

export function cut(text: string, most: number): string {
  const letters = [...text];
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join("")}…`;
}

/** "0.42 cores, 44 % of the pod's CPU". */
function cpuText(cpu: CpuShare): string {
  return `${(cpu.percent / 100).toFixed(2)} cores, ${Math.round(cpu.share * 100)} % of the pod's CPU`;
}

function nodeLabel(node: TopologyNode, cpu: CpuShare | null): string {
  const parts = [
    visible(node.name),
    node.container === null ? "" : `in ${visible(containerTitle(node.container))}`,
    node.pid === null ? "process not known" : `pid ${node.pid}`,
    node.why ?? ROLE_TEXT[node.role],
    node.purpose,
    cpu === null ? "" : cpuText(cpu),
    `${plural(node.edges, "edge")}`,
    bytes(node.bytes),
  ];
  if (node.ports.length > 0) parts.push(`listens on port ${node.ports.join(", ")}`);
  return parts.filter((part) => part !== "").join(", ");
}

/** How much of the pod's CPU a process uses: a part of a circle. */
function CpuRing({ radius, share }: { radius: number; share: number }) {
  return (
    <g class="cpu-ring" aria-hidden="true">
      <circle class="whole" r={radius} />
      <circle
        class="part"
        r={radius}
        pathLength="100"
        stroke-dasharray={`${Math.max(0.5, share * 100).toFixed(1)} 100`}
        transform="rotate(-90)"
      />
    </g>
  );
}

export function NodeShape({ node, place, cpu, focused, picked, dim, onFocus }: NodeProps) {
  const size = nodeSize(place.area);
  const name = visible(node.name);
  const button = {
    role: "button",
    tabIndex: focused ? 0 : -1,
    "data-item": node.key,
    "aria-label": nodeLabel(node, cpu),
    "aria-pressed": picked,
    onFocus,
  } as const;
  const detail =
    node.pid === null
      ? node.purpose !== ""
        ? node.purpose
        : node.addresses[0] === node.name
          ? ""
          : visible(node.addresses[0] ?? "")
      : `${node.pid}${node.container === null ? "" : ` · ${visible(podOrContainer(node.container))}`}`;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the shape in it is the button; this is for the pointer
    <g
      data-key={node.key}
      class={`map-node role-${node.role} in-${place.area}${picked ? " picked" : ""}${dim ? " dim" : ""}`}
      transform={`translate(${place.x} ${place.y})`}
      onClick={() => patchRoute({ node: picked ? "" : node.key }, "replace")}
    >
      <title>
        {[nodeLabel(node, cpu), ...(node.container === null ? [] : [containerTip(node.container)])].join(
          "\n\n",
        )}
      </title>
      {size.round ? (
        <>
          <circle class="shape" r={size.x} {...button} />
          {cpu !== null && <CpuRing radius={size.x + RING_GAP} share={cpu.share} />}
          <text
            aria-hidden="true"
            class="node-name"
            y={place.area === "rim" ? nameBelow(place) : -1}
            text-anchor="middle"
          >
            {cut(name, place.area === "center" ? 10 : place.area === "ring" ? 8 : 11)}
          </text>
          {place.area !== "rim" && (
            <text aria-hidden="true" class="node-detail" y="14" text-anchor="middle">
              {node.pid === null ? cut(detail, 9) : node.pid}
            </text>
          )}
        </>
      ) : (
        <>
          <rect
            class="shape"
            x={-size.x}
            y={-size.y}
            width={2 * size.x}
            height={2 * size.y}
            rx="6"
            {...button}
          />
          <text aria-hidden="true" class="node-name" y={detail === "" ? 4 : -2} text-anchor="middle">
            {cut(name, 24)}
          </text>
          {detail !== "" && (
            <text aria-hidden="true" class="node-detail" y="12" text-anchor="middle">
              {cut(detail, 28)}
            </text>
          )}
        </>
      )}
    </g>
  );
}

/** Names of small nodes stand on the side of the border, where no other node is. */
function nameBelow(place: Place): number {
  const { y } = nodeSize(place.area);
  return place.y < CENTER.y ? -y - RING_GAP - 6 : y + RING_GAP + 13;
}

interface NodeProps {
  node: TopologyNode;
  place: Place;
  /** Null where it is not known, and outside of the pod. */
  cpu: CpuShare | null;
  focused: boolean;
  picked: boolean;
  dim: boolean;
  onFocus: () => void;
}

/** A node with the name that stands below small ones. */
export function nodeBox(place: Place): Box {
  const { x, y, round } = nodeSize(place.area);
  const ring = round ? RING_GAP : 0;
  const box = boxAround(place, 2 * (x + ring), 2 * (y + ring));
  if (place.area !== "rim") return box;
  const named = { ...box, x: place.x - 37, width: 74, height: box.height + 16 };
  return place.y < CENTER.y ? { ...named, y: box.y - 16 } : named;
}
