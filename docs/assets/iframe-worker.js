/* The search of the theme runs in a worker, which browsers refuse to pages opened from disk. There a
   frame does its work: it runs the same script, and passes messages both ways. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = this.onerror = null;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inner = this.frame.contentWindow;
      inner.document.open();
      inner.document.write("<html><body></body></html>");
      inner.document.close();
      inner.postMessage = (data) => this.hand(this, data);
      const script = inner.document.createElement("script");
      script.src = new URL(url, document.baseURI).href;
      script.onload = () => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.hand(inner, data));
      };
      inner.document.body.appendChild(script);
    }

    hand(target, data) {
      target.dispatchEvent(new MessageEvent("message", { data }));
    }

    postMessage(data) {
      if (this.ready) this.hand(this.frame.contentWindow, data);
      else this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
