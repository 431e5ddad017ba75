// Pages whose code comes after the first load, in the groups that share code.

import { later } from "./later";

const profiles = later("the profile page", () => import("./task"));
const map = later("the network page", () => import("./network"));
const edge = later("the page of an edge", () => import("./edge_page"));
const requests = later("the page of requests", () => import("./requests"));
const node = later("the node page", () => import("./node"));
const diagnose = later("the page of check-ups", () => import("./diagnose"));
const checkup = later("the check-up page", () => import("./checkup"));
const compared = later("the comparison", () => import("./compare_checkups"));
const diagnosis = later("the diagnosis page", () => import("./task_diagnosis"));

export const TaskPage = profiles.page((module) => module.TaskPage);
export const NetworkPage = map.page((module) => module.NetworkPage);
export const EdgePage = edge.page((module) => module.EdgePage);
export const RequestsResult = requests.page((module) => module.RequestsResult);
export const NodePage = node.page((module) => module.NodePage);
export const DiagnosePage = diagnose.page((module) => module.DiagnosePage);
export const CheckupPage = checkup.page((module) => module.CheckupPage);
export const CompareCheckupsPage = compared.page((module) => module.CompareCheckupsPage);
export const TaskDiagnosisPage = diagnosis.page((module) => module.TaskDiagnosisPage);

/** Fetches the code of all pages, one after another, so that they open at once and while the agent is away. */
export async function fetchPages(): Promise<void> {
  for (const group of [profiles, map, edge, requests, node, diagnose, checkup, compared, diagnosis])
    await group.fetch();
}
