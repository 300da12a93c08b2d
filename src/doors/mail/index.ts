/** MAIL's routes: see README.md. */
export type { MailDoor } from "./door.js";
export { type MailRoutesOptions, mailRoutes } from "./extension.js";
