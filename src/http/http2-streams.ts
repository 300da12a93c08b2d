/**
 * Limits the HTTP/2 streams that one address has open over all of its connections. The number of one connection is a
 * setting of the protocol, which the listener announces.
 */
import type { FastifyInstance } from "fastify";
import { MailroomError, Semaphore } from "../base/index.js";

export function limitHttp2Streams(app: FastifyInstance, perAddress: number): void {
  const open = new Semaphore({ perKey: perAddress });
  app.addHook("onRequest", (request, reply, done) => {
    if (request.raw.httpVersionMajor === 2) {
      const release = open.tryAcquire(request.ip);
      if (release === undefined) {
        const reason = `${perAddress} HTTP/2 streams of this address are open, which is the limit`;
        throw new MailroomError("overloaded", `${reason}: retry later`);
      }
      reply.raw.once("close", release);
    }
    done();
  });
}
