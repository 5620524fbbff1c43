import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // a browser's document only where a test file asks for it; starting one takes longer than most tests
    environment: "node",
    pool: "threads",
    maxWorkers: 2,
    // nothing here takes a second, but machines can be busy
    testTimeout: 60_000,
  },
});
