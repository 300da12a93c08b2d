export { type HttpActionName, httpActions } from "./actions.js";
