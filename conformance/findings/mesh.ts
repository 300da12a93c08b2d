/** Faults found in the mesh, each as the rule that forbids it. */
import { chapter } from "./chapter.js";

export const MESH_FINDINGS = [
  ...chapter("mesh", "strangers and members against the machine", [
    [
      "MESH-M-1",
      "Every check of a request target takes linear time, never throws, and counts as a refused request.",
    ],
    ["MESH-M-5", "Members that never answer delay messages to others by seconds at most."],
    ["MESH-M-6", "The answer of a peer is read up to the size that its route needs."],
    [
      "MESH-M-7",
      "No field that a stranger chooses leads to an internal error, and internal errors count as refused requests.",
    ],
    ["MESH-M-8", "Connections that do nothing are closed, and given up for newcomers."],
    ["MESH-M-11", "A swarm admits as many members as a member list can name."],
  ]),
  ...chapter("mesh", "membership that every member agrees on", [
    [
      "MESH-M-2",
      "A refused lifecycle message delays nothing behind it, and every member learns of a new master even if the old one is gone.",
    ],
    [
      "MESH-M-13",
      "A message that a peer refuses because of a clock is signed again when the clock is right.",
    ],
    [
      "MESH-M-14",
      "A new key renews every copy of the old one, and its owner learns which invites end with it.",
    ],
    ["MESH-M-16", "A master admits no endpoint that it would never call."],
    ["MESH-M-17", "Peers that speak HTTP/2 only are reached."],
    ["MESH-M-18", "A leave ends the membership that it names, and no later one."],
    ["MESH-M-20", "Messages say what happened, and documents what to do."],
  ]),
  ...chapter("mesh", "agents and people behind the mesh", [
    [
      "MESH-M-3",
      "A private message reaches the context and the answers of its own thread only; context is no part of a body.",
    ],
    ["MESH-M-4", "Text of other agents cannot forge a line on a terminal."],
    ["MESH-M-9", "A command holds the data directory for less time than a starting server waits."],
    ["MESH-M-10", "The operator sees what waits, for whom, since when and why, and can retry or drop it."],
    ["MESH-M-12", "The wake-up of one Mailroom can wake another: the secret is enough."],
    ["MESH-M-15", "A GitHub event is announced once, however often it is delivered."],
    ["MESH-M-19", "A state file that contradicts itself is refused as a whole."],
  ]),
];
