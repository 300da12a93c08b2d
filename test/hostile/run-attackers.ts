/** The attackers' own process: `node run-attackers.mjs <door> <port> <seconds>`. Reports nothing; the server is watched. */
import { type Attack, Attacker } from "./attacker.js";
import { DOOR_ATTACKS } from "./doors.js";

const ATTACKERS = 20;

const [door = "", port = "", seconds = ""] = process.argv.slice(2);
const attacks: readonly Attack[] = Object.values(DOOR_ATTACKS[door] ?? {});
if (attacks.length === 0) throw new Error(`no attacks on '${door}'`);
const target = { port: Number(port), tls: door === "mesh", until: Date.now() + Number(seconds) * 1_000 };

await Promise.all(
  Array.from({ length: ATTACKERS }, async (_, number) => {
    const attacker = new Attacker(target, number, door === "federation" ? "agent" : "user");
    const attack = attacks[number % attacks.length];
    while (attacker.active) {
      await attack?.(attacker).catch(() => {});
      await attacker.pause(50);
    }
    attacker.leave();
  }),
);
process.exit(0);
