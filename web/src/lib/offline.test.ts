import { describe, expect, it } from "vitest";
import { bytesOf, parseAbout } from "./offline";

const packed = (value: unknown): string =>
  btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value))));

describe("an exported file", () => {
  it("says what its profile is", () => {
    const about = {
      title: "Täsk </script>",
      unit: "switches",
      time: "off the CPU",
      idle: null,
      version: "1",
    };
    expect(parseAbout(packed(about))).toEqual({ ...about, idle: "" });
  });

  it("is read with defaults where it was changed, and refused where it is damaged", () => {
    expect(parseAbout(packed({ title: 5, unit: "apples", idle: "x".repeat(5000) }))).toEqual({
      title: "Profile",
      unit: "samples",
      time: "",
      idle: "x".repeat(2000),
      version: "",
    });
    expect(parseAbout(packed(null)).title).toBe("Profile");
    expect(() => parseAbout("@@ABOUT@@")).toThrow(/damaged/);
    expect(() => bytesOf("%")).toThrow(/damaged/);
    expect([...bytesOf("AP8=")]).toEqual([0, 255]);
  });
});
