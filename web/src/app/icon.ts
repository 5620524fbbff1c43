/** The icon of the tab, with a dot while somebody is needed. */

const SIZE = 64;
/** Icons lie on the browser's own colours, so this one is not the page's amber of either kind. */
const DOT = "#f0a030";

let plain: string | null = null;
let wanted = false;

export function dotIcon(on: boolean): void {
  const link = document.querySelector<HTMLLinkElement>('link[rel~="icon"]');
  if (!link) return;
  plain ??= link.href;
  wanted = on;
  if (!on) link.href = plain;
  else void dotted(plain).then((url) => url && wanted && (link.href = url));
}

async function dotted(href: string): Promise<string | null> {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = SIZE;
  try {
    const image = new Image(SIZE, SIZE);
    image.src = href;
    await image.decode();
    const pen = canvas.getContext("2d");
    if (!pen) return null;
    pen.drawImage(image, 0, 0, SIZE, SIZE);
    pen.fillStyle = DOT;
    pen.beginPath();
    pen.arc(SIZE - 16, 16, 15, 0, 2 * Math.PI);
    pen.fill();
    return canvas.toDataURL();
  } catch {
    return null; // no icon that can be drawn on; the title says it as well
  }
}
