// The access token. It arrives once in the fragment of the printed URL, which the browser never
// sends, and lives in this tab only. A new tab asks those that are open on the same origin for it: only pages
// of the agent can hear that, and no request of another site ever carries the token.

const STORAGE_KEY = "profiler-agent.token";
const TOKEN = /^[0-9A-Za-z._~-]{1,512}$/;
const FRAGMENT = "#token=";

/** Takes the token out of the address bar, if one is there. True when there was. */
export function takeTokenFromAddress(): boolean {
  const token = location.hash.startsWith(FRAGMENT) ? location.hash.slice(FRAGMENT.length) : "";
  if (!TOKEN.test(token)) return false;
  saveToken(token);
  history.replaceState(history.state, "", location.pathname + location.search);
  return true;
}

export function saveToken(token: string): void {
  sessionStorage.setItem(STORAGE_KEY, token);
}

export function currentToken(): string | null {
  return sessionStorage.getItem(STORAGE_KEY);
}

const CHANNEL = "profiler-agent.token";
/** Tabs that are open answer at once, or they are not there. */
const ANSWER_MS = 400;

interface Message {
  readonly ask?: true;
  readonly token?: string;
}

/** Answers new tabs, for as long as this one is open and its token is a good one. */
export function lendToken(isGood: () => boolean): void {
  if (typeof BroadcastChannel === "undefined") return;
  const channel = new BroadcastChannel(CHANNEL);
  channel.addEventListener("message", ({ data }: MessageEvent<Message>) => {
    const token = currentToken();
    if (data?.ask === true && token !== null && isGood()) channel.postMessage({ token } satisfies Message);
  });
}

/** The token of another tab, when this one has none; null when no tab answers. */
export async function borrowToken(): Promise<string | null> {
  if (currentToken() !== null || typeof BroadcastChannel === "undefined") return null;
  const channel = new BroadcastChannel(CHANNEL);
  const answer = new Promise<string | null>((resolve) => {
    setTimeout(() => resolve(null), ANSWER_MS);
    channel.addEventListener("message", ({ data }: MessageEvent<Message>) => {
      if (typeof data?.token === "string" && TOKEN.test(data.token)) resolve(data.token);
    });
  });
  channel.postMessage({ ask: true } satisfies Message);
  const token = await answer;
  channel.close();
  if (token !== null) saveToken(token);
  return token;
}
