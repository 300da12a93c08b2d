import { z } from "zod";
import { TaskRecord } from "./common.js";

export const TaskMap = z
  .record(z.string(), TaskRecord)
  .meta({ id: "TaskMap", description: "The reference's list of tasks: whole tasks by their id." });
