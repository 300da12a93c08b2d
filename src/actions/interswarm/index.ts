export { InterswarmActionError, type InterswarmActionName, interswarmActions } from "./actions.js";
