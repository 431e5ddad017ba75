// Names of containers for tests.

import type { ContainerNames } from "../api/types";

export function containerNames(
  namespace: string,
  pod: string,
  name: string | null,
  change: Partial<ContainerNames> = {},
): ContainerNames {
  return {
    title: [namespace, pod, ...(name === null ? [] : [name])].join("/"),
    name,
    role: "main",
    image: null,
    pod: { namespace, name: pod, uid: `uid of ${namespace}/${pod}` },
    labels: {},
    workload: null,
    named_by: "kubernetes",
    ...change,
  };
}
