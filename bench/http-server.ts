/** The `mailroom` command from the benchmark's build. */
import { main } from "../src/cli/main.js";

process.exitCode = await main(process.argv.slice(2));
