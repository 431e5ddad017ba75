// What kinds of tasks have as their result.

/** Whether the result has connections and no stacks. */
export function hasEdges(kind: string): boolean {
  return kind === "network" || kind === "requests";
}
