/** Settings of the commands that talk to a server. */
import { boolean, defineSettings, duration, httpUrl, text } from "../base/index.js";

export const clientSettings = defineSettings({
  url: httpUrl("client.url", {
    default: "http://127.0.0.1:8000",
    env: ["MAILROOM_URL"],
    doc: "Server that commands call when none is given.",
    flag: { names: ["--url"], value: "<url>" },
  }),
  token: text("client.token", {
    secret: true,
    env: ["MAILROOM_TOKEN"],
    doc: "Token to call with.",
    flag: { names: ["--token", "--api-key"], short: "-ak", value: "<token>", commands: ["client"] },
  }),
  timeout: duration("client.timeout", {
    min: 1,
    default: "1h",
    doc: "How long to wait for an answer.",
    flag: { names: ["--timeout"], short: "-t", value: "<seconds>", commands: ["client"] },
  }),
  verbose: boolean("client.verbose", {
    default: false,
    doc: "Show whole messages and every event.",
    flag: { names: ["--verbose"], short: "-v", commands: ["client"] },
  }),
});
