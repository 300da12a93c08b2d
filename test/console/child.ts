/** A server in a process of its own, to be killed. Arguments: data directory, port. */
import { createServer } from "../../src/server/index.js";
import { opsSwarm } from "./ops.js";

const [data = "", port = "0"] = process.argv.slice(2);
const server = await createServer({
  swarm: opsSwarm({ pace: 0.8 }),
  dev: true,
  data,
  settings: { log: { level: "silent" } },
});
console.log(await server.listen({ port: Number(port) }));
