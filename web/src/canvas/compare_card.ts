// Draws the card of a comparison as a picture.

import type { CardLine } from "../lib/compare_card";

const WIDTH = 900;
const MARGIN = 32;
/** Pixels of the picture for each of the card: sharp on every screen. */
const SCALE = 2;
const STYLES: Readonly<
  Record<CardLine["kind"], { readonly font: string; readonly colour: string; readonly height: number }>
> = {
  title: { font: "600 24px system-ui, sans-serif", colour: "#1a1d23", height: 36 },
  muted: { font: "14px system-ui, sans-serif", colour: "#5d6470", height: 30 },
  text: { font: "16px system-ui, sans-serif", colour: "#1a1d23", height: 26 },
  number: { font: "600 18px system-ui, sans-serif", colour: "#3f51c4", height: 32 },
};
const FOOT = "profiler-agent";

export function drawCard(lines: readonly CardLine[]): Promise<Blob> {
  const canvas = document.createElement("canvas");
  const height = lines.reduce((sum, { kind }) => sum + STYLES[kind].height, 2 * MARGIN + 24);
  canvas.width = WIDTH * SCALE;
  canvas.height = height * SCALE;
  const context = canvas.getContext("2d");
  if (context === null) return Promise.reject(new Error("the browser has no canvas"));
  context.scale(SCALE, SCALE);
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, WIDTH, height);
  context.fillStyle = "#3f51c4";
  context.fillRect(0, 0, 6, height);
  context.textBaseline = "top";
  let y = MARGIN;
  for (const { kind, text } of lines) {
    const style = STYLES[kind];
    context.font = style.font;
    context.fillStyle = style.colour;
    context.fillText(text, MARGIN, y, WIDTH - 2 * MARGIN);
    y += style.height;
  }
  context.font = STYLES.muted.font;
  context.fillStyle = STYLES.muted.colour;
  context.fillText(FOOT, MARGIN, y + 6);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => {
      if (blob === null) reject(new Error("the picture could not be made"));
      else resolve(blob);
    }, "image/png");
  });
}
