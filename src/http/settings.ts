/** Limits of the HTTP listener. */
import { bytes, defineSettings, duration, integer, type SettingValues } from "../base/index.js";

export const httpSettings = defineSettings({
  body: bytes("server.body_limit", { default: "1mb", doc: "Largest request body." }),
  bodies: bytes("limits.bodies", {
    default: "64mb",
    doc: "Request bodies being received. Beyond it larger ones wait unread.",
  }),
  bodiesPerCaller: bytes("limits.bodies_per_caller", {
    default: "16mb",
    doc: "The same for one caller.",
  }),
  connectionsPerAddress: integer("limits.connections_per_address", {
    min: 1,
    default: 5_000,
    doc: "Open connections from one address. Proxies that are trusted have no limit.",
  }),
  credentialReview: duration("server.credential_review", {
    min: 1,
    default: "30s",
    doc: "How often the credentials of open streams are checked again with an external service or the keys of a JWT issuer. A rejected one ends its streams.",
  }),
  waits: integer("limits.waits", {
    min: 1,
    default: 20_000,
    doc: "Requests waiting for a round to end.",
  }),
  waitsPerCaller: integer("limits.waits_per_caller", {
    min: 1,
    default: 10_000,
    doc: "Requests of one caller waiting for a round to end.",
  }),
  streams: integer("limits.streams", { min: 1, default: 5_000, doc: "Open event streams." }),
  streamsPerCaller: integer("limits.streams_per_caller", {
    min: 1,
    default: 100,
    doc: "Open event streams of one caller.",
  }),
  http2StreamsPerConnection: integer("limits.http2_streams_per_connection", {
    min: 1,
    default: 100,
    doc: "Requests of one HTTP/2 connection being served, open event streams included. The server announces the number, and further requests wait in the client.",
  }),
  http2StreamsPerAddress: integer("limits.http2_streams_per_address", {
    min: 1,
    default: 1_000,
    doc: "The same for all HTTP/2 connections of one address. Further requests are rejected with 503.",
  }),
  failedAuthentications: integer("limits.failed_auth_per_minute", {
    default: 20,
    doc: "Failed authentications per minute from one address before it gets 429; 0 means no limit.",
  }),
  requestsPerCaller: integer("limits.requests_per_minute", {
    default: 0,
    doc: "Requests per minute from one caller; 0 means no limit.",
  }),
  requestsPerAddress: integer("limits.requests_per_minute_per_address", {
    default: 0,
    doc: "Requests per minute from one address; 0 means no limit.",
  }),
  publicRequestsPerAddress: integer("limits.public_requests_per_minute_per_address", {
    default: 6_000,
    doc: "Requests per minute from one address to routes without authentication; 0 means no limit.",
  }),
  streamBuffer: bytes("limits.stream_buffer", {
    default: "256kb",
    doc: "Data buffered for a slow reader of an event stream.",
  }),
  streamStallTimeout: duration("limits.stream_stall_timeout", {
    min: 1,
    default: "30s",
    doc: "How long that buffer may stay full before the stream is closed.",
  }),
  eventPage: integer("limits.event_page", {
    min: 1,
    default: 1_000,
    doc: "Events on one JSON page of a task's events.",
  }),
});

/** Times are milliseconds, sizes bytes; 0 means no limit where the setting says so. */
export type HttpLimits = SettingValues<typeof httpSettings>;
