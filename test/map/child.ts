/**
 * A MAP server in its own process, to be killed.
 *
 * node child.js <data directory>
 *
 * It opens nothing until it reads a byte from standard input, so that the next process can load while the
 * last one is still running. Then it prints its port.
 */
import { readSync } from "node:fs";
import { createServer } from "node:http";
import { systemClock } from "../../src/base/index.js";
import { systemIds } from "../../src/base/node.js";
import { attachMap, MapServer } from "../../src/doors/map/index.js";
import { openStore } from "../../src/store/index.js";

const [directory = ""] = process.argv.slice(2);
readSync(0, Buffer.alloc(1));
const store = await openStore({ directory });
const map = await MapServer.open({
  store,
  index: store.conversations,
  clock: systemClock,
  ids: systemIds,
  dev: true,
  report: (error) => process.stderr.write(`${String(error)}\n`),
});
const http = createServer();
attachMap(http, map);
http.listen(0, "127.0.0.1", () => {
  const address = http.address();
  if (typeof address === "object" && address !== null) process.stdout.write(`${address.port}\n`);
});
