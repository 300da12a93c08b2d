/** The client of the conformance scenarios: connects to the server in its last argument and calls all of its tools. */
import { connectMcpServer } from "../../../src/actions/index.js";
import { actionContext } from "../../../src/testing/action-context.js";

const server = await connectMcpServer({
  name: "scenario",
  url: process.argv.at(-1) ?? "",
  allow: ["loopback"],
  timeLimit: 20_000,
});
for (const { name, run } of server.actions) {
  const args = name.endsWith("add_numbers") ? { a: 2, b: 3 } : {};
  console.log(name, await run(args, actionContext()));
}
await server.close();
// A reconnection that is running when the client closes would keep the process alive.
process.exit();
