"""The words by which a mail is known, per category, in any of our languages.

A cue fits where a word begins with it ("erstatt" finds "Erstattung"); one that ends with a space is whole words. A cue
of another script than Latin fits anywhere, for some of them put no space between words.
"""

from schemas.jobs import Category

CUES: dict[Category, tuple[str, ...]] = {
    Category.ORDER_STATUS: (
        "where is my order", "where is my parcel", "where is my package", "has my order", "has not arrived",
        "hasn t arrived", "not yet arrived", "track my", "tracking number", "order status", "status of my order",
        "delivery date", "when will my", "still waiting for my order", "not been delivered", "wo ist mein",
        "wo bleibt", "sendungsverfolgung", "noch nicht angekommen", "liefertermin", "lieferstatus", "ma commande",
        "mon colis", "numéro de suivi", "pas encore arrivé", "pas encore reçu", "dónde está mi", "mi pedido",
        "mi paquete", "número de seguimiento", "dov è il mio", "mio ordine", "mio pacco", "waar is mijn",
        "mijn bestelling", "meu pedido", "minha encomenda", "注文", "届いていません", "где мой заказ", "мой заказ",
        "أين طلبي", "طلبي",
    ),
    Category.REFUND: (
        "refund", "money back", "reimburse", "return the item", "return this item", "return it for", "send it back",
        "charged twice", "double charge", "cancel my order", "rückerstattung", "geld zurück", "erstatt",
        "zurückgeben", "doppelt abgebucht", "stornier", "remboursement", "rembourser", "débité deux fois",
        "annuler ma commande", "reembolso", "devolución", "devolver", "cobrado dos veces", "rimborso", "restituire",
        "terugbetaling", "geld terug", "estorno", "返金", "返品", "возврат", "вернуть деньги",
    ),
    Category.COMPLAINT: (
        "a complaint", "my complaint", "i want to complain", "unacceptable", "disappointed", "terrible service",
        "worst service", "worst experience", "broken on arrival", "arrived broken", "arrived damaged", "was damaged",
        "is damaged", "is faulty", "is defective", "never again", "third time", "beschwer", "unverschämt",
        "enttäuscht", "beschädigt", "kaputt", "defekt", "reklamation", "plainte ", "inadmissible", "déçu",
        "endommagé", "cassé ", "défectueux", "queja ", "inaceptable", "decepcionad", "dañado", "roto ", "rota ",
        "reclamo", "inaccettabile", "deluso ", "delusa ", "danneggiat", "rotto ", "klacht", "teleurgesteld",
        "beschadigd", "danificad", "reclamação", "壊れて", "жалоб", "сломан",
    ),
    Category.INVOICE: (
        "invoice", "receipt for", "vat number", "copy of the bill", "billing address", "billing question",
        "payment terms", "rechnung", "umsatzsteuer", "zahlungserinnerung", "facture", "tva ", "factura", "fattura",
        "factuur", "fatura", "請求書", "счет фактур", "счёт на оплату",
    ),
    Category.TECHNICAL: (
        "cannot log in", "can t log in", "can not log in", "reset my password", "password reset link",
        "error message", "does not load", "app crashes", "keeps crashing", "stack trace", "log file", "error code",
        "funktioniert nicht", "fehlermeldung", "passwort vergessen", "kann mich nicht anmelden", "ne fonctionne pas",
        "message d erreur", "mot de passe", "no funciona", "mensaje de error", "contraseña", "non funziona",
        "wachtwoord", "ログイン", "не работает",
    ),
    Category.SALES: (
        "price list", "bulk order", "quote for", "a quotation", "do you ship to", "do you sell", "in stock",
        "discount for", "wholesale price", "angebot für", "preisliste", "mengenrabatt", "liefern sie nach", "devis ",
        "livrez vous", "presupuesto", "lista de precios", "preventivo", "offerte voor", "orçamento",
        "在庫", "价格", "多少钱", "прайс",
    ),
    Category.LEGAL: (
        "my lawyer", "my solicitor", "my attorney", "legal action", "take you to court", "small claims",
        "consumer protection", "anwalt", "rechtliche schritte", "abmahnung", "mise en demeure", "mon avocat",
        "devant le tribunal", "mi abogado", "acciones legales", "vie legali", "mio avvocato", "gdpr request",
        "data protection authority", "delete all my data", "datenschutz",
    ),
    Category.JOB_APPLICATION: (
        "application for the", "apply for the", "applying for", "my cv", "cover letter", "job opening",
        "open position", "bewerbung", "lebenslauf", "stellenanzeige", "candidature", "lettre de motivation",
        "candidatura", "currículum", "vacante ", "sollicitatie",
    ),
    Category.THANKS: (
        "thank you so much", "thanks so much", "thanks a lot for", "just wanted to say thank", "great service",
        "very happy with", "vielen dank für die schnelle", "herzlichen dank", "super service", "un grand merci",
        "merci beaucoup", "muchas gracias", "mille grazie", "grazie mille", "hartelijk dank", "muito obrigad",
        "ありがとうございました", "спасибо большое", "большое спасибо",
    ),
    Category.NEWSLETTER: (
        "unsubscribe", "newsletter", "mailing list", "view this mail in your browser", "view in browser",
        "in this issue", "this week s", "you are receiving this", "you received this",
        "to be removed from this list", "listinfo", "mailman", "abmelden", "abbestellen", "se désabonner",
        "darse de baja", "list archive", "yahoo groups", "weekly digest", "daily digest", "headlines", "subscribers",
    ),
    Category.SPAM: (
        "click here", "100 free", "absolutely free", "free trial", "risk free", "act now", "limited time",
        "special offer", "order now", "viagra", "cialis", "weight loss", "lose weight", "earn money", "make money",
        "extra income", "work from home", "home based business", "be your own boss", "financial freedom",
        "million dollars", "lottery", "you have won", "you ve won", "congratulations you", "casino", "xxx ",
        "hot singles", "adults only", "mortgage", "refinanc", "lowest rate", "low interest", "debt ",
        "credit card debt", "consolidat", "no obligation", "satisfaction guaranteed", "money back guarantee",
        "toll free", "bulk email", "email addresses", "opt in", "remove me", "to be removed", "removal instructions",
        "this is not spam", "one time mailing", "cable descrambler", "hgh ", "human growth", "enlarge", "pills ",
        "prescription", "university diploma", "toner ", "inkjet", "insurance quotes", "life insurance",
        "stock alert", "investment", "offshore", "next of kin", "late president", "confidential business",
        "foreign partner", "sum of us", "guaranteed", "mlm ", "multi level", "chain letter", "unlimited income",
        "crypto currency", "bitcoin", "double your", "gratis gewinnen", "gewonnen", "vous avez gagné", "ha ganado",
        "jetzt zugreifen", "increase your sales", "for free", "cash bonus", "dear friend", "copydvd", "copy dvd",
        "web traffic", "search engines", "herbal", "porn", "sexy", "teens ", "live cams", "spy on",
        "business proposal", "strictly confidential", "removed from our", "excluded from", "credit repair",
        "email marketing", "per month ", "profits ",
    ),
    Category.PHISHING: (
        "verify your account", "verify your identity", "confirm your password", "account has been suspended",
        "account will be suspended", "account will be closed", "unusual activity", "unusual sign in",
        "confirm your bank", "update your payment details", "update your billing information",
        "konto wurde gesperrt", "konto verifizieren", "bestätigen sie ihre daten", "votre compte a été suspendu",
        "confirmez vos informations", "su cuenta ha sido suspendida", "gift cards",
    ),
    Category.AUTO_REPLY: (
        "out of office", "out of the office", "automatic reply", "auto reply", "autoreply", "abwesenheitsnotiz",
        "nicht im büro", "automatische antwort", "absence du bureau", "réponse automatique", "fuera de la oficina",
        "respuesta automática", "undelivered mail", "undeliverable", "delivery status notification",
        "mail delivery failed", "returned mail", "failure notice", "could not be delivered to",
        "permanent fatal errors", "delivery has failed",
    ),
}  # fmt: skip

#: Words of haste, in the writer's own voice.
HASTE: tuple[str, ...] = (
    "urgent", "asap ", "as soon as possible", "immediately", "right away", "emergency", "by tomorrow",
    "within 24 hours", "within 48 hours", "last warning", "final notice", "dringend", "sofort", "umgehend",
    "bis morgen", "urgence", "au plus vite", "immédiatement", "urgente", "inmediatamente", "cuanto antes", "subito",
    "spoed", "至急", "срочно", "عاجل",
)  # fmt: skip

#: Danger to people is urgent whatever the mail is about.
DANGER: tuple[str, ...] = (
    "caught fire", "smoke came", "started to smoke", "electric shock", "injur", "burned", "burnt", "allergic",
    "gebrannt", "stromschlag", "verletz", "pris feu", "blessé", "se quemó", "herid", "preso fuoco",
)  # fmt: skip
