import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { json, type Outcome, onOutcome, ProblemError } from "./client";
import { currentToken } from "./token";

vi.mock("./token", () => ({ currentToken: vi.fn() }));

const outcomes: Outcome[] = [];
let answer: () => Promise<Response>;

const refused = (code: string, status = 401) =>
  new Response(JSON.stringify({ code }), { status, headers: { "content-type": "application/problem+json" } });

beforeEach(() => {
  outcomes.length = 0;
  onOutcome((outcome) => outcomes.push(outcome));
  vi.mocked(currentToken).mockReturnValue("first");
  vi.stubGlobal("fetch", () => answer());
});
afterEach(() => vi.unstubAllGlobals());

describe("an answer that refuses", () => {
  it.each([
    ["wrong_token", 401, "wrong_token"],
    ["too_many_wrong_tokens", 429, "wrong_token"],
    ["missing_token", 401, "missing_token"],
    ["not_found", 404, "answered"],
  ] as const)("%s with %i is %s", async (code, status, outcome) => {
    answer = async () => refused(code, status);
    await expect(json("/meta")).rejects.toThrow(ProblemError);
    expect(outcomes).toEqual([outcome]);
  });

  it("the token of before is no news", async () => {
    answer = async () => {
      vi.mocked(currentToken).mockReturnValue("second");
      return refused("wrong_token");
    };
    await expect(json("/meta")).rejects.toThrow(ProblemError);
    expect(outcomes).toEqual([]);
  });

  it("and is not read to its end says nothing of the token", async () => {
    const leaving = new AbortController();
    answer = async () => {
      const body = new ReadableStream({
        pull: (controller) => {
          leaving.abort();
          controller.error(leaving.signal.reason);
        },
      });
      return new Response(body, { status: 401, headers: { "content-type": "application/json" } });
    };
    await expect(json("/meta", leaving.signal)).rejects.toThrow("aborted");
    expect(outcomes).toEqual([]);
  });
});
