// Server-sent events from a byte stream. EventSource cannot send the Authorization header, so the
// stream is read with fetch and cut into messages here.

export interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

/** A message that grows beyond this is a fault of the server; the reader gives up. */
export const MAX_MESSAGE_LENGTH = 16 * 1024 * 1024;

/** Feed it text in any pieces; it calls `deliver` for each complete message. */
export class EventParser {
  private rest = "";
  private event = "";
  private data: string[] = [];
  private size = 0;
  private readonly deliver: (message: ServerEvent) => void;

  constructor(deliver: (message: ServerEvent) => void) {
    this.deliver = deliver;
  }

  /** Throws RangeError when a message is longer than MAX_MESSAGE_LENGTH. */
  feed(text: string): void {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const raw of lines) this.line(raw.endsWith("\r") ? raw.slice(0, -1) : raw);
    if (this.rest.length + this.size > MAX_MESSAGE_LENGTH) throw new RangeError("server-sent event too long");
  }

  private line(line: string): void {
    if (line === "") {
      if (this.data.length > 0) this.deliver({ event: this.event || "message", data: this.data.join("\n") });
      this.event = "";
      this.data = [];
      this.size = 0;
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon === -1 ? line : line.slice(0, colon);
    let value = colon === -1 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "event") this.event = value;
    if (field === "data") {
      this.data.push(value);
      this.size += value.length;
    }
  }
}
