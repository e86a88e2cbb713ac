"""What answers to labelled questions come to: questions, approaches, figures, findings. It asks nobody over a wire."""
