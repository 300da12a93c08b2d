/** Fastify with nothing of ours: the least that a request can cost in this run. Says where it listens, as ours does. */
import { fastify } from "fastify";

const app = fastify();
app.get("/health", async () => ({ status: "healthy" }));
console.log(JSON.stringify({ url: await app.listen({ host: "127.0.0.1", port: 0 }) }));
process.once("SIGTERM", () => void app.close());
