// What an exported HTML file states about its profile. The file is untrusted and may have been changed, so
// every field is checked.

export interface About {
  readonly title: string;
  readonly unit: "samples" | "switches";
  readonly time: string;
  /** Empty where nothing waits. */
  readonly idle: string;
  readonly version: string;
}

const MAX_TEXT = 2_000;

/** Base64 to bytes; throws on what is none. */
export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  let letters: string;
  try {
    letters = atob(base64);
  } catch {
    throw new Error("the data are not base64: the file is damaged");
  }
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

export function parseAbout(base64: string): About {
  let found: unknown;
  try {
    found = JSON.parse(new TextDecoder().decode(bytesOf(base64)));
  } catch {
    throw new Error("the description of the profile cannot be read: the file is damaged");
  }
  const fields = (typeof found === "object" && found !== null ? found : {}) as Record<string, unknown>;
  const text = (name: string): string => {
    const value = fields[name];
    return typeof value === "string" ? value.slice(0, MAX_TEXT) : "";
  };
  return {
    title: text("title") || "Profile",
    unit: text("unit") === "switches" ? "switches" : "samples",
    time: text("time"),
    idle: text("idle"),
    version: text("version"),
  };
}
