// The call for the requests of a task.

import { json } from "./client";
import type { TaskRequests } from "./types";

export const requestsPath = (id: string): string => `/tasks/${encodeURIComponent(id)}/requests`;

export function taskRequests(id: string, signal?: AbortSignal): Promise<TaskRequests> {
  return json<TaskRequests>(requestsPath(id), signal);
}
