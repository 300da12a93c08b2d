/** Tools for tests of swarms, stores and buses: see README.md. */
export { actionContext } from "./action-context.js";
export { type BusHarness, busContract } from "./contracts/bus.js";
export type { ContractCase } from "./contracts/cases.js";
export { type OpenStore, type StoreHarness, storeContract } from "./contracts/store.js";
export { taskReadsContract } from "./contracts/task-reads.js";
export { openTestMailroom, type TestMailroomOptions } from "./mailroom.js";
export { type ModelStep, type ScriptedModel, scriptedModel } from "./scripted-model.js";
export { seededIds } from "./seeded-ids.js";
export { VirtualClock } from "./virtual-clock.js";
