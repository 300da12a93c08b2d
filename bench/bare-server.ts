/** Fastify without Mailroom: the minimum cost of a request in this run. Prints its URL like Mailroom. */
import { fastify } from "fastify";

const app = fastify();
app.get("/health", async () => ({ status: "healthy" }));
console.log(JSON.stringify({ url: await app.listen({ host: "127.0.0.1", port: 0 }) }));
process.once("SIGTERM", () => void app.close());
