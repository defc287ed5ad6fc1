"""Section ``media.transcriber``: who writes down what is said in recordings that came without a transcript."""

from __future__ import annotations

from ..media.rules import Transcription
from .section import Section
from .types import Duration, FilePath, Switch, Text, Url


class TranscriberOptions(Section):
    """Writes down what is said in recordings that come without a transcript: a server with OpenAI's ``/audio/transcriptions``, or a model in this process. Neither by default."""

    base_url: Url | None = None
    """Address of the server, up to and including the version: ``http://127.0.0.1:8000/v1``."""
    model: Text | None = None
    """The model's name there; needed with ``base_url``."""
    api_key: Text | None = None
    """Key of the server, as ``${env:NAME}``."""
    path: FilePath | None = None
    """Folder of a model for faster-whisper (extra ``[asr]``), instead of a server."""
    language: Text | None = None
    """ISO 639-1 code of what is spoken, as in ``de``; null leaves it to the model."""
    timeout: Duration = Transcription.timeout
    """Seconds in which a recording must be written down."""
    instead_of_sound: Switch = False
    """Whether judges read the transcript and are not sent the sound: for models that cannot hear."""

    def wanted(self) -> Transcription | None:
        """The same as the metrics take it; None where there is neither server nor model.

        Raises:
            ValueError: something is missing, or one thing too many.
        """
        if self.path is not None:
            if self.base_url is not None or self.model is not None:
                raise ValueError("path is a model in this process: it goes with no base_url and no model")
            return Transcription(path=self.path, language=self.language, timeout=self.timeout)
        if (self.base_url is None) != (self.model is None):
            missing, given = ("model", "base_url") if self.model is None else ("base_url", "model")
            raise ValueError(f"{missing} is required, because {given} is set")
        if self.base_url is None:
            if self.instead_of_sound:
                raise ValueError("instead_of_sound needs who writes down what is said: base_url and model, or path")
            return None
        return Transcription(self.base_url, self.model or "", self.api_key, None, self.language, self.timeout)
