// The wire types of containers and their names (docs/http-api.json). All text in names is untrusted.

import type { List } from "./types";

export interface Workload {
  /** `Deployment`, `StatefulSet`, `Compose service` and the like. */
  readonly kind: string;
  readonly name: string;
}

export interface PodNames {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** What a container is called, by whoever started it. */
export interface ContainerNames {
  /** `NAMESPACE/POD/CONTAINER`, as far as it is known; without a pod the container's name. */
  readonly title: string;
  /** Null where only the pod is known. */
  readonly name: string | null;
  readonly role: "main" | "init" | "sidecar" | "ephemeral" | "sandbox" | "unknown";
  readonly image: string | null;
  readonly pod: PodNames | null;
  /** The pod's; without a pod the container's. */
  readonly labels: Readonly<Record<string, string>>;
  readonly workload: Workload | null;
  readonly named_by: "kubernetes" | "cri" | "docker";
}

/** Names of the containers that occur in an answer, by id; those that nobody has named are missing. */
export type NamedContainers = Readonly<Record<string, ContainerNames>>;

export interface Container {
  readonly id: string;
  readonly runtime: string;
  readonly pod_uid: string | null;
  /** Null when nobody has named it. */
  readonly names: ContainerNames | null;
}

export interface ContainerGroup {
  readonly id: string;
  readonly runtime: string;
  readonly cgroup: string;
  readonly names: ContainerNames | null;
  readonly pids: readonly number[];
  readonly cpu_percent: number | null;
}

/** Who names containers. */
export interface NameSource {
  readonly source: ContainerNames["named_by"];
  /** `waiting`: it failed and is asked again. */
  readonly state: "off" | "connecting" | "connected" | "waiting";
  /** Why it is off or waits. */
  readonly reason: string | null;
  /** Whom it asks. */
  readonly endpoint: string | null;
  /** Containers that exist and have their names from it. */
  readonly containers: number;
}

export interface ContainerList extends List<ContainerGroup> {
  readonly name_sources: readonly NameSource[];
}

/** Which pods, and which of their containers; one of name, labels and container is there. */
export interface PodSelector {
  readonly namespace?: string;
  readonly name?: string;
  /** As in `kubectl get --selector`. */
  readonly labels?: string;
  readonly container?: string;
}
