"""Django's settings. Settings of the operator come from the environment; see `environment.py`.

Variables: NAMESRV_ADDR or CONSOLE_CLUSTERS, CONSOLE_CLUSTER_CREDENTIALS, GANTRY_HOME,
DATABASE_URL, REDIS_URL, SECRET_KEY,
SPARK_MASTER, CONSOLE_SPARK_IDLE_MINUTES, CONSOLE_SPARK_MEMORY_MB, CONSOLE_SIDE_PORT,
CONSOLE_INGEST_MINUTES,
CONSOLE_COMPACT_HOURS, CONSOLE_LAKE_DAYS,
CONSOLE_HISTORY_DAYS, CONSOLE_HISTORY_MB, CONSOLE_HISTORY_STORE,
CONSOLE_JOB_FILE_DAYS, CONSOLE_JOB_FILES_MB, CONSOLE_ANALYTICS_MEMORY_MB,
CONSOLE_ANALYTICS_THREADS, CONSOLE_ANALYTICS_SECONDS, CONSOLE_AUDIT_DAYS, CONSOLE_HTTPS,
CONSOLE_ALLOWED_HOSTS, CONSOLE_METRICS_TOKEN_FILE, CONSOLE_EVALUATION_SECONDS,
CONSOLE_ALARM_GROUP_SECONDS, CONSOLE_ALARM_NETWORKS, CONSOLE_URL, CONSOLE_SMTP_HOST,
CONSOLE_SMTP_PORT, CONSOLE_SMTP_SECURITY, CONSOLE_SMTP_USER, CONSOLE_SMTP_PASSWORD_FILE,
CONSOLE_SMTP_FROM, CONSOLE_REQUESTS_MAX,
CONSOLE_REQUESTS_WAITING_MAX, CONSOLE_WEBSOCKETS_MAX, CONSOLE_FINDINGS_LAG_S and further
thresholds CONSOLE_FINDINGS_*, CONSOLE_READ_ONLY_CLUSTERS,
CONSOLE_SECOND_FACTOR, CONSOLE_OIDC_*, CONSOLE_LDAP_*, CONSOLE_TRUSTED_ORIGINS,
CONSOLE_TRUSTED_PROXIES, CONSOLE_PREFIX,
CONSOLE_TIME_ZONE, CONSOLE_DEBUG.

An area of the console (topics, groups, …) is one Django app listed in AREAS; see `areas.py`.
"""

from datetime import timedelta

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from console.environment import EnvironmentProblem, read_environment
from console.project_files import PROJECT_ROOT, project_file

BASE_DIR = PROJECT_ROOT

try:
    ENVIRONMENT = read_environment()
except EnvironmentProblem as problem:
    raise ImproperlyConfigured(
        f"The console cannot start with this environment:\n{problem}"
    ) from None

# ---- Gantry -------------------------------------------------------------------------------------

GANTRY_HOME = ENVIRONMENT.home
CONSOLE_CLUSTERS = ENVIRONMENT.clusters
CONSOLE_CLUSTERS_FROM = ENVIRONMENT.clusters_from
CONSOLE_CLUSTER_MARKS = ENVIRONMENT.cluster_marks
CONSOLE_READ_ONLY_CLUSTERS = ENVIRONMENT.read_only_clusters
CONSOLE_CLUSTER_TLS = {name: tls for name, (_file, tls) in ENVIRONMENT.cluster_tls.items()}
CONSOLE_CLUSTER_TLS_FILES = {name: file for name, (file, _tls) in ENVIRONMENT.cluster_tls.items()}
CONSOLE_CLUSTER_CREDENTIALS = ENVIRONMENT.cluster_credentials
REDIS_URL = ENVIRONMENT.redis_url
SPARK_MASTER = ENVIRONMENT.spark_master
DEMO_CONTROL = ENVIRONMENT.demo_control
DOCUMENTATION = ENVIRONMENT.documentation or str(project_file("build/site"))
SPARK_IDLE_MINUTES = ENVIRONMENT.spark_idle_minutes
SPARK_MEMORY_MB = ENVIRONMENT.spark_memory_mb
SIDE_PORT = ENVIRONMENT.side_port
LAKE_DAYS = ENVIRONMENT.lake_days
JOB_FILE_DAYS = ENVIRONMENT.job_file_days
JOB_FILES_MB = ENVIRONMENT.job_files_mb
ANALYTICS_MEMORY_MB = ENVIRONMENT.analytics_memory_mb
ANALYTICS_THREADS = ENVIRONMENT.analytics_threads
ANALYTICS_SECONDS = ENVIRONMENT.analytics_seconds
# Interval of scheduled jobs by kind, minutes; 0 means start by button only.
JOB_MINUTES = {"ingest": ENVIRONMENT.ingest_minutes, "compact": ENVIRONMENT.compact_hours * 60}
HISTORY_DAYS = ENVIRONMENT.history.days
HISTORY_MB = ENVIRONMENT.history.mb
HISTORY_IN_DATABASE = ENVIRONMENT.history.in_database
EVALUATION_SECONDS = ENVIRONMENT.evaluation_seconds
ALARM_GROUP_SECONDS = ENVIRONMENT.alarms.group_seconds
ALARM_NETWORKS = ENVIRONMENT.alarms.networks
CONSOLE_URL = ENVIRONMENT.alarms.console_url
REQUESTS_MAX = ENVIRONMENT.requests_max
REQUESTS_WAITING_MAX = ENVIRONMENT.requests_waiting_max
WEBSOCKETS_MAX = ENVIRONMENT.websockets_max
METRICS_TOKEN = ENVIRONMENT.metrics_token
TRUSTED_PROXIES = ENVIRONMENT.trusted_proxies
FINDING_THRESHOLDS = ENVIRONMENT.finding_thresholds
AUDIT_DAYS = ENVIRONMENT.audit_days
AUDIT_ROWS_MAX = 200_000

# In the order of the navigation.
AREAS = [
    "console.services.clusters",
    "console.services.findings",
    "console.services.replicas",
    "console.areas.topology",
    "console.areas.topics",
    "console.areas.groups",
    "console.areas.clients",
    "console.areas.acl_users",
    "console.areas.acl_accounts",
    "console.areas.definitions",
    "console.areas.offsets",
    "console.areas.messages",
    "console.areas.deadletters",
    "console.areas.pending",
    "console.areas.traces",
    "console.services.schemas",
    "console.services.search",
    "console.services.analytics",
    "console.services.history",
    "console.services.alarms",
    "console.services.masking",
    "console.services.bundles",
    "console.services.exports",
    "console.services.jobs",
    "console.accounts",
    "console.audit",
]

# ---- Django -------------------------------------------------------------------------------------

SECRET_KEY = ENVIRONMENT.secret_key
DEBUG = ENVIRONMENT.debug
PREFIX = ENVIRONMENT.prefix
FORCE_SCRIPT_NAME = PREFIX or None
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
ALLOWED_HOSTS = list(ENVIRONMENT.allowed_hosts)
CSRF_TRUSTED_ORIGINS = list(ENVIRONMENT.trusted_origins)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",
    "axes",
    "channels",
    "django_htmx",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "knox",
    "rest_framework",
    "console",
    "console.frame",
    "console.resources",
    "console.api",
    "console.services.leases",
    *AREAS,
    # Behind the console: of equal texts, the translation of the first app counts.
    "django_celery_beat",
]

MIDDLEWARE = [
    "console.web.request_ids.RequestIds",
    "django.middleware.security.SecurityMiddleware",
    "console.web.security.PolicyHeaders",
    "console.web.request_metrics.RequestMetrics",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "console.accounts.zones.TimeZones",
    "console.frame.access.AccessMiddleware",
    "console.services.search.recent.RecentItemsMiddleware",
    "console.web.error_pages.ClusterTroubleMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.frame.pages.page_context",
            ],
            "builtins": ["console.frame.templatetags.gantry"],
        },
    }
]
FORM_RENDERER = "console.frame.forms.TablerRenderer"

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {
    "default": dj_database_url.parse(
        ENVIRONMENT.database_url or f"sqlite:///{GANTRY_HOME / 'console.sqlite3'}",
        conn_max_age=0,  # under ASGI each request runs in a new thread, which ends with the request
    )
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # Console, worker and scheduler share one file: with WAL, readers do not wait for a writer, and
    # IMMEDIATE takes the write lock at the start of a transaction instead of failing half-way.
    DATABASES["default"]["OPTIONS"] = {
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
    }

STATIC_URL = f"{PREFIX}/static/"
STATICFILES_DIRS = [project_file("static")]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "console.web.static_files.HashedUrlStorage"},
}

# ---- Languages and time -------------------------------------------------------------------------

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LANGUAGE_COOKIE_NAME = "gantry_language"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_PATH = f"{PREFIX}/"
USE_I18N = True
USE_TZ = True
TIME_ZONE = ENVIRONMENT.time_zone

# ---- People and their browsers ------------------------------------------------------------------

LOGIN_URL = "accounts:login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "accounts:login"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
    "console.accounts.ldap_backend.LdapBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
    )
]

PASSWORD_HASHERS = ["console.accounts.hashing.LimitedHasher"]

SECOND_FACTOR = ENVIRONMENT.second_factor
OIDC = ENVIRONMENT.identity.oidc
LDAP = ENVIRONMENT.identity.ldap

AXES_HANDLER = "console.accounts.sign_in_limits.SignInLimits"
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=5)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], "ip_address", "username"]
AXES_LOCKOUT_CALLABLE = "console.accounts.views.locked_out"
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False

SESSION_COOKIE_NAME = "gantry_session"
SESSION_COOKIE_AGE = 7 * 24 * 3600
SESSION_COOKIE_PATH = f"{PREFIX}/"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = ENVIRONMENT.https
CSRF_COOKIE_NAME = "gantry_csrf"
CSRF_COOKIE_PATH = f"{PREFIX}/"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = ENVIRONMENT.https
CSRF_FAILURE_VIEW = "console.web.error_pages.csrf_failure"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if ENVIRONMENT.https:
    SECURE_HSTS_SECONDS = 30 * 24 * 3600

# ---- Mail of alarms -----------------------------------------------------------------------------

EMAIL_HOST = ENVIRONMENT.alarms.smtp.host
EMAIL_PORT = ENVIRONMENT.alarms.smtp.port
EMAIL_USE_TLS = ENVIRONMENT.alarms.smtp.security == "starttls"
EMAIL_USE_SSL = ENVIRONMENT.alarms.smtp.security == "tls"
EMAIL_HOST_USER = ENVIRONMENT.alarms.smtp.user
EMAIL_HOST_PASSWORD = ENVIRONMENT.alarms.smtp.password
DEFAULT_FROM_EMAIL = ENVIRONMENT.alarms.smtp.sender

# ---- REST API -----------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "console.accounts.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["console.frame.access.ApiAccess"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["console.api.parsers.BoundedJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "console.api.schema.AreaSchema",
    "EXCEPTION_HANDLER": "console.api.problems.problem_response",
}
REST_KNOX = {"TOKEN_TTL": timedelta(days=90), "AUTO_REFRESH": False}
SPECTACULAR_SETTINGS = {
    "TITLE": "Gantry",
    "DESCRIPTION": "Management of RocketMQ clusters: the same resources as the console's pages.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVERS": [{"url": PREFIX or "/"}],
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "displayRequestDuration": True},
    "COMPONENT_SPLIT_REQUEST": True,
    # Types of the path converters that are not Django's, see `console/frame/names.py`.
    "PATH_CONVERTER_OVERRIDES": {"name": str},
    "POSTPROCESSING_HOOKS": [
        "console.api.schema.add_problems",
        "console.api.examples.add_examples",
    ],
}

# ---- Live feeds and background jobs -------------------------------------------------------------

# "local" carries live rates within one process and needs no Redis; "default" carries job progress
# between processes.
_memory_layer = {
    "BACKEND": "channels.layers.InMemoryChannelLayer",
    # A full queue of a slow browser drops samples; a page open for a month still gets samples.
    "CONFIG": {"capacity": 20, "group_expiry": 30 * 24 * 3600},
}
CHANNEL_LAYERS = {
    "local": _memory_layer,
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "gantry"},
    }
    if REDIS_URL
    else _memory_layer,
}

CELERY_BROKER_URL = REDIS_URL or "redis://127.0.0.1:6379/0"
CELERY_RESULT_BACKEND = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TIMEZONE = TIME_ZONE
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BEAT_SCHEDULER = "console.scheduler:Scheduler"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 3, "socket_timeout": 20}
# Missed runs expire and are not repeated: the next run reads all data anyway.
CELERY_BEAT_SCHEDULE = {
    "reap-lost-jobs": {
        "task": "console.jobs.reap_lost",
        "schedule": timedelta(minutes=1),
        "options": {"expires": 60},
    },
    "prune-audit": {
        "task": "console.audit.prune",
        "schedule": timedelta(hours=6),
        "options": {"expires": 3600},
    },
    "forget-left-labels": {
        "task": "console.resources.forget_left_labels",
        "schedule": timedelta(minutes=30),
        "options": {"expires": 1800},
    },
    **{
        f"{kind}-on-schedule": {
            "task": "console.jobs.start_everywhere",
            "args": (kind,),
            "schedule": timedelta(minutes=minutes),
            "options": {"expires": minutes * 60},
        }
        for kind, minutes in JOB_MINUTES.items()
        if minutes
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"}},
    "filters": {"refused_handshakes": {"()": "console.web.log_filters.RefusedHandshakes"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django": {"handlers": [], "level": "INFO", "propagate": True},
        "django.request": {"level": "ERROR"},
        "axes": {"level": "WARNING"},
        "uvicorn.error": {"filters": ["refused_handshakes"]},
        # The page names host and setting; any client can cause a line per request.
        "django.security.DisallowedHost": {"level": "CRITICAL"},
    },
}
