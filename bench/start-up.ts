import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { demoSwarm, Mailroom } from "../src/index.js";

const directory = mkdtempSync(join(tmpdir(), "mailroom-bench-"));
const mailroom = await Mailroom.open({ swarm: demoSwarm(), data: directory });
const answer = await mailroom.user("ann").ask("What is 2 + 2?");
await mailroom.close();
rmSync(directory, { recursive: true, force: true });
process.exitCode = answer.status === "completed" ? 0 : 1;
