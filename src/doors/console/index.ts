/** What other modules may import: see README.md. */
export { consolePage } from "./files.js";
export { CONSOLE_CONTROL_PATH } from "./links.js";
