export { type FileActionOptions, type FileActions, fileActions } from "./actions.js";
export { FileActionError, type FileActionErrorCode } from "./errors.js";
