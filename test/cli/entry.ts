/** The command line from its source, as `bin/mailroom.js` runs it from the build. */
import { main } from "../../src/cli/main.js";

process.exitCode = await main(process.argv.slice(2));
