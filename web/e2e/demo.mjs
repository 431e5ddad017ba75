// A real agent that shows recorded data: `profiler-agent serve --demo-data`.

import { spawn } from "node:child_process";

/** Starts `program` on a free port; `url` carries the token. */
export async function startDemo(program) {
  const agent = spawn(program, ["serve", "--demo-data", "--listen", "127.0.0.1:0", "--log", "warn"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => agent.on("exit", resolve));
  const url = await new Promise((resolve, reject) => {
    let text = "";
    agent.stdout.on("data", (part) => {
      text += part;
      const found = /listening on (\S+)/.exec(text);
      if (found !== null) resolve(found[1]);
    });
    agent.on("error", reject);
    agent.on("exit", (code) => reject(new Error(`the agent ended with ${code}`)));
  });
  return {
    url,
    stop: () => {
      agent.kill("SIGTERM");
      return ended;
    },
  };
}
