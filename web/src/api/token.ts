// The access token. It arrives once in the fragment of the printed URL, which the browser never
// sends, and lives in this tab only.

const STORAGE_KEY = "profiler-agent.token";
const FRAGMENT = /^#token=([0-9A-Za-z._~-]{1,512})$/;

/** Takes the token out of the address bar, if one is there. True when there was. */
export function takeTokenFromAddress(): boolean {
  const found = FRAGMENT.exec(location.hash);
  if (found?.[1] === undefined) return false;
  saveToken(found[1]);
  history.replaceState(history.state, "", location.pathname + location.search);
  return true;
}

export function saveToken(token: string): void {
  sessionStorage.setItem(STORAGE_KEY, token);
}

export function currentToken(): string | null {
  return sessionStorage.getItem(STORAGE_KEY);
}
