import { after, before } from "node:test";
import { curlCases } from "./client-curl.ts";
import { goCases } from "./client-go.ts";
import { javaCases } from "./client-java.ts";
import { nodeCases } from "./client-node.ts";
import { pythonCases } from "./client-python.ts";
import { startBench, testClients } from "./client-rig.ts";
import type { Bench } from "./client-rig.ts";
import { wgetCases } from "./client-wget.ts";
import { Cleanups } from "./rig.ts";

// One Weir and one pair of origins for all cases; each case has its own path.

const cleanups = new Cleanups();
let bench: Bench;
before(async () => {
  bench = await startBench(cleanups);
});
after(() => cleanups.run());

testClients(() => bench, [...curlCases, ...wgetCases, ...nodeCases, ...pythonCases, ...goCases, ...javaCases]);
