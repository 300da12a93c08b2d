/** The Agent2Agent protocol, in both directions: see README.md. */
export { type CardOptions, cardOf, cardText } from "./card.js";
export { A2aCarrier, type A2aCarrierOptions, type A2aCarrierStore, type A2aPeer } from "./carrier.js";
export { type A2aHttpDoor, type A2aHttpOptions, createA2aHttpDoor } from "./http.js";
