/** One attacker: an address of its own, tokens of its own, and ways to reach the server at a low level. */
import { createHmac } from "node:crypto";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { WebSocket } from "ws";

export const SECRET = "a secret of the hostile harness, 32 bytes or more";

/** A token that the server under attack accepts. */
export function tokenFor(role: string, id: string): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ sub: id, role, exp: 4_000_000_000 })}`;
  return `${text}.${createHmac("sha256", SECRET).update(text).digest("base64url")}`;
}

export interface Target {
  readonly port: number;
  /** Whether the door speaks TLS. */
  readonly tls: boolean;
  /** Of the attackers, in milliseconds since the epoch. */
  readonly until: number;
}

export class Attacker {
  readonly id: string;
  readonly token: string;
  readonly #target: Target;
  readonly #address: string;
  readonly #open = new Set<{ destroy(): void }>();

  constructor(target: Target, number: number, role = "user") {
    this.#target = target;
    this.id = `attacker-${number}`;
    this.token = tokenFor(role, this.id);
    this.#address = `127.0.${1 + (number >> 8)}.${1 + (number & 255)}`;
  }

  get active(): boolean {
    return Date.now() < this.#target.until;
  }

  /** Lets the server and the other attackers work. */
  pause(milliseconds = 1): Promise<void> {
    return sleep(milliseconds);
  }

  /** A connection that sends any bytes. Undefined if the server does not accept it. */
  async socket(): Promise<Socket | undefined> {
    const { port, tls } = this.#target;
    const where = { host: "127.0.0.1", port, localAddress: this.#address };
    const socket = tls
      ? connectTls({ ...where, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] })
      : connect(where);
    socket.on("error", () => {});
    const open = await new Promise<boolean>((resolve) => {
      socket.once(tls ? "secureConnect" : "connect", () => resolve(true));
      socket.once("close", () => resolve(false));
    });
    if (!open) return undefined;
    this.#keep(socket);
    return socket;
  }

  /** A WebSocket; with `connect`, it is a connected MAP client. */
  async map({ authenticated = true } = {}): Promise<WebSocket | undefined> {
    const ws = new WebSocket(`ws://127.0.0.1:${this.#target.port}/map`, {
      localAddress: this.#address,
      ...(authenticated && { headers: { authorization: `Bearer ${this.token}` } }),
    });
    ws.on("error", () => {});
    const open = await new Promise<boolean>((resolve) => {
      ws.once("open", () => resolve(true));
      ws.once("close", () => resolve(false));
    });
    if (!open) return undefined;
    const kept = { destroy: () => ws.terminate() };
    this.#open.add(kept);
    ws.once("close", () => this.#open.delete(kept));
    if (!authenticated) return ws;
    return (await this.call(ws, "map/connect", {})) === undefined ? undefined : ws;
  }

  /** Undefined if the request fails or the connection closes. */
  call(ws: WebSocket, method: string, params: object): Promise<Record<string, unknown> | undefined> {
    const id = Math.random();
    return new Promise((resolve) => {
      const done = (result?: Record<string, unknown>): void => {
        ws.off("message", onMessage);
        ws.off("close", onClose);
        resolve(result);
      };
      const onClose = (): void => done();
      const onMessage = (data: unknown): void => {
        const frame = JSON.parse(String(data));
        if (frame.id === id) done(frame.result);
      };
      ws.on("message", onMessage);
      ws.on("close", onClose);
      if (ws.readyState !== ws.OPEN) done();
      else ws.send(frameOf(method, params, id));
    });
  }

  /** Waits while too much is unsent: memory of the attacker is not the point. */
  async flushed(ws: WebSocket): Promise<void> {
    while (ws.bufferedAmount > 4_000_000 && ws.readyState === ws.OPEN && this.active) await this.pause(5);
  }

  /** The head of an HTTP request. */
  head(method: string, path: string, headers: Readonly<Record<string, string | number>> = {}): string {
    const all = { host: `127.0.0.1:${this.#target.port}`, authorization: `Bearer ${this.token}`, ...headers };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
    return `${method} ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`;
  }

  leave(): void {
    for (const one of this.#open) one.destroy();
    this.#open.clear();
  }

  #keep(socket: Socket): void {
    this.#open.add(socket);
    socket.once("close", () => this.#open.delete(socket));
  }
}

export function frameOf(method: string, params: object, id: unknown = 1): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params });
}

export type Attack = (attacker: Attacker) => Promise<void>;
