// Requests of the flows between pods: what the operations of their edges add up to.

import type { RequestOperation, TaskRequests } from "../api/types";
import { duration } from "./format";
import { grouped } from "./grouped";
import { operationKey, operationSeconds, protocolTitle } from "./requests";

export interface FlowRequests {
  /** Null while it is not known for how long they were counted. */
  readonly perSecond: number | null;
  readonly count: number;
  readonly errors: number;
  /** The upper end of its bucket, in nanoseconds; null without a whole answer. */
  readonly p95: number | null;
  /** As they are written. */
  readonly protocols: readonly string[];
  readonly tls: boolean;
}

/** What is kept of an answer for as long as a window may count from it. */
export interface CountedRequests extends Pick<TaskRequests, "window" | "plaintext"> {
  readonly operations: readonly CountedOperation[];
}

type CountedOperation = Pick<
  RequestOperation,
  "edge" | "protocol" | "tls" | "method" | "route" | "other" | "count" | "errors"
> & { readonly buckets: Buckets };

export function countedRequests({ window, plaintext, operations }: TaskRequests): CountedRequests {
  return {
    window,
    plaintext,
    operations: operations.map(
      ({ edge, protocol, tls, method, route, other, count, errors, latency_ns: { buckets } }) => ({
        edge,
        protocol,
        tls,
        method,
        route,
        other,
        count,
        errors,
        buckets,
      }),
    ),
  };
}

type Buckets = RequestOperation["latency_ns"]["buckets"];

/** Counts of an operation since an earlier answer. */
interface Counted {
  readonly count: number;
  readonly errors: number;
  readonly buckets: Buckets;
}

function since({ count, errors, buckets }: Counted, before: Counted | undefined): Counted {
  if (before === undefined) return { count, errors, buckets };
  const earlier = new Map(before.buckets.map(([from, , values]) => [from, values]));
  return {
    count: Math.max(0, count - before.count),
    errors: Math.max(0, errors - before.errors),
    buckets: buckets.map(([from, to, values]) => [from, to, Math.max(0, values - (earlier.get(from) ?? 0))]),
  };
}

/** The upper end of the bucket in which the value is that so many are not above. */
function upperEnd(buckets: Buckets, share: number): number | null {
  const all = buckets.reduce((sum, [, , values]) => sum + values, 0);
  if (all === 0) return null;
  const rank = Math.max(1, Math.ceil(all * share));
  let seen = 0;
  for (const [, to, values] of buckets.toSorted((a, b) => a[1] - b[1])) {
    seen += values;
    if (seen >= rank) return to;
  }
  return null;
}

/**
 * Requests by the id of their edge, added up for each flow. With `before`, an earlier answer of the same task, only
 * those since then.
 */
export function flowRequests(
  answer: CountedRequests,
  before: CountedRequests | null,
): (edges: readonly { readonly id: string }[]) => FlowRequests | null {
  const byEdge = grouped(answer.operations, ({ edge }) => edge?.id ?? null);
  const earlier = new Map((before?.operations ?? []).map((each) => [operationKey(each), each]));
  const secondsOf = (operation: CountedOperation): number | null => {
    const all = operationSeconds(answer, operation);
    const until = before === null ? 0 : operationSeconds(before, operation);
    return all === null || until === null || all <= until ? null : all - until;
  };
  return (edges) => {
    const operations = edges.flatMap(({ id }) => byEdge.get(id) ?? []);
    if (operations.length === 0) return null;
    const counted = operations.map((each) => since(each, earlier.get(operationKey(each))));
    const rates = operations.map((each, i) => {
      const seconds = secondsOf(each);
      return seconds === null ? null : counted[i]!.count / seconds;
    });
    const sum = (value: (one: Counted) => number): number =>
      counted.reduce((all, one) => all + value(one), 0);
    return {
      perSecond: rates.includes(null) ? null : rates.reduce<number>((all, rate) => all + (rate ?? 0), 0),
      count: sum(({ count }) => count),
      errors: sum(({ errors }) => errors),
      p95: upperEnd(
        counted.flatMap(({ buckets }) => buckets),
        0.95,
      ),
      protocols: [...new Set(operations.map(({ protocol }) => protocolTitle(protocol)))].sort(),
      tls: operations.some(({ tls }) => tls),
    };
  };
}

/** A share with as many digits as tell it from none. */
export function errorText({ count, errors }: Pick<FlowRequests, "count" | "errors">): string {
  if (errors === 0 || count === 0) return "no errors";
  const percent = (100 * errors) / count;
  return `${percent < 0.1 ? "< 0.1" : percent < 10 ? percent.toFixed(1) : Math.round(percent)} % errors`;
}

export function p95Text({ p95 }: Pick<FlowRequests, "p95">): string {
  return p95 === null ? "p95 not known" : `p95 ${duration(p95)}`;
}
