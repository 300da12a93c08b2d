/** Parses, checks and describes `swarms.json`. Pure: text in, data and problems out. */
export { readSwarmFile } from "./read.js";
