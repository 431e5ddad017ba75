// What a process is in its pod, told by Kubernetes where it says so, else from names alone, with the reason: a
// reader may know better. The agent does the same (crates/host/src/process/pods.rs); both are tested with
// tests/fixtures/pods/cases.json.

import type { Process } from "../api/types";

export type Role = "sidecar" | "app" | "other";

export interface RoleOf {
  readonly role: Role;
  readonly reason: string;
}

/** Programs that stand between an application and the network. */
const PROXIES = new Set(["envoy", "cilium-envoy", "linkerd2-proxy", "linkerd-proxy", "haproxy", "mosn"]);
/** Programs that start a proxy and feed it. */
const PROXY_AGENTS = new Set(["pilot-agent", "istio-agent", "consul-dataplane", "bootstrap-agent"]);
/** Programs that hold a pod or a container together. */
const KEEPERS = new Set(["pause", "tini", "dumb-init", "catatonit", "docker-init", "conmon"]);

/** The most bytes of a name that the kernel keeps of a process. */
const COMM_BYTES = 15;

/** Name of the file that it executes; empty where that cannot be read. */
function fileName(process: Process): string {
  const path = process.exe ?? "";
  return path.slice(path.lastIndexOf("/") + 1).replace(/ \(deleted\)$/, "");
}

/**
 * What the process calls itself: its file may be a shared one, or an interpreter. A name that the kernel
 * cut is completed from the file; programs with a known role keep the file's name.
 */
export function programOf(process: Process): string {
  const file = fileName(process);
  const isCut = new TextEncoder().encode(process.comm).length === COMM_BYTES && file.startsWith(process.comm);
  const isKnown = PROXIES.has(file) || PROXY_AGENTS.has(file) || KEEPERS.has(file);
  return process.comm === "" || isCut || isKnown ? file : process.comm;
}

function isOneOf(process: Process, names: ReadonlySet<string>): boolean {
  return names.has(programOf(process)) || names.has(fileName(process));
}

/** What Kubernetes says that a container is for, where that is not the pod's own work. */
function ofKubernetes({ container }: Process): RoleOf | null {
  const names = container?.names ?? null;
  if (names === null) return null;
  const name = names.name ?? "";
  switch (names.role) {
    case "sidecar":
      return { role: "sidecar", reason: `Kubernetes runs its container ${name} as a sidecar` };
    case "init":
      return { role: "other", reason: `its container ${name} runs before those of the pod` };
    case "ephemeral":
      return { role: "other", reason: `its container ${name} was added to the running pod` };
    default:
      return null;
  }
}

/** Roles of all processes of one pod, by process id. */
export function rolesInPod(members: readonly Process[]): Map<string, RoleOf> {
  const proxies = members.filter((member) => isOneOf(member, PROXIES));
  const servants = members.filter((member) => isOneOf(member, PROXIES) || isOneOf(member, PROXY_AGENTS));
  // A single container for everything does not show which processes belong together.
  const told = new Set(members.map((member) => member.container?.id)).size > 1;
  const containers = new Set(
    servants.map((member) => (told ? member.container?.id : undefined)).filter((id) => id !== undefined),
  );
  const isBeside = (member: Process): boolean =>
    isOneOf(member, PROXY_AGENTS) || (member.container !== null && containers.has(member.container.id));
  const apps = members.filter(
    (member) =>
      !isOneOf(member, PROXIES) &&
      !isOneOf(member, KEEPERS) &&
      !isBeside(member) &&
      ofKubernetes(member) === null,
  );
  const proxy = proxies[0];
  const name = proxy === undefined ? "" : programOf(proxy);
  const roleOf = (member: Process): RoleOf => {
    if (isOneOf(member, KEEPERS))
      return { role: "other", reason: `${programOf(member)} holds the pod or its container together` };
    const told = ofKubernetes(member);
    if (told !== null) return told;
    if (isOneOf(member, PROXIES)) {
      const app = apps[0];
      return app === undefined
        ? {
            role: "other",
            reason: `${programOf(member)} is a proxy without an application in its pod: a gateway`,
          }
        : {
            role: "sidecar",
            reason: `${programOf(member)} is a proxy and shares the pod with ${programOf(app)}`,
          };
    }
    if (isBeside(member) && proxy !== undefined) {
      const role: Role = apps.length > 0 ? "sidecar" : "other";
      return isOneOf(member, PROXY_AGENTS)
        ? { role, reason: `${programOf(member)} starts and configures the proxy ${name}` }
        : { role, reason: `it is in the container of the proxy ${name}` };
    }
    if (isOneOf(member, PROXY_AGENTS))
      return { role: "other", reason: `${programOf(member)} belongs to a proxy, which is not running` };
    return proxy === undefined
      ? { role: "app", reason: "the pod has no proxy that is known here" }
      : { role: "app", reason: `it is not a proxy and shares the pod with ${name}` };
  };
  return new Map(members.map((member) => [member.id, roleOf(member)]));
}
