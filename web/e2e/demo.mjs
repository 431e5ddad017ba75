// A real agent that shows recorded data: `profiler-agent serve --demo-data`.

import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";

/** Starts `program` on a free port; `url` carries the token. */
export async function startDemo(program) {
  const agent = spawn(program, ["serve", "--demo-data", "--listen", "127.0.0.1:0", "--log", "warn"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => agent.on("exit", resolve));
  const [address, file] = await new Promise((resolve, reject) => {
    let text = "";
    agent.stdout.on("data", (part) => {
      text += part;
      const found = /listening on (\S+); the token is in (.+) \(`/.exec(text);
      if (found !== null) resolve(found.slice(1));
    });
    agent.on("error", reject);
    agent.on("exit", (code) => reject(new Error(`the agent ended with ${code}`)));
  });
  const url = `${address}#token=${(await readFile(file, "utf8")).trim()}`;
  return {
    url,
    stop: () => {
      agent.kill("SIGTERM");
      return ended;
    },
  };
}
